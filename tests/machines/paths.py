"""The ways through statemachines/turn.asl.yaml, named."""

COMMITTED = ["CommitTurn", "ChooseEnding", "AnnounceReply", "Replied"]
FIXED = ["BeginTurn", "ChooseStart", *COMMITTED]
RULED = ["BeginTurn", "ChooseStart", "Understand", "Govern", "AnswerParts"]
KNOWLEDGE = [*RULED, "ChooseRoute", "Retrieve", "ComposeReply", *COMMITTED]
STATED = [*RULED, "ChooseRoute", "AlreadyAnswered", "ComposeReply", *COMMITTED]
DUPLICATE = ["BeginTurn", "ChooseStart", "Duplicate"]
OVERTAKEN = ["CommitTurn", "ChooseEnding", "Superseded"]
FAILED = ["FailTurn", "ChooseEnding", "AnnounceReply", "Replied"]
