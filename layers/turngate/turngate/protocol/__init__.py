"""The turn protocol at work: read, let `domain` decide, write one transaction, interpret what the store answered."""
