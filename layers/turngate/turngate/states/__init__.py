"""What each state of statemachines/turn.asl.yaml does, one module a state, in the order a message meets them."""
