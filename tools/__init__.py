"""What the repository says about itself: coverage of features, diagrams, rules of the machines, import costs.

Nothing here is deployed. Each module runs as `python -m tools.<name>` from the root of the repository.
"""
