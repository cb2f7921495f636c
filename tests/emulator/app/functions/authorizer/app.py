"""Lets in whoever shows the good ticket, on both APIs."""


def handler(event, context):
    if "methodArn" in event:  # WebSocket
        ticket = (event.get("queryStringParameters") or {}).get("ticket")
        statement = {
            "Action": "execute-api:Invoke",
            "Effect": "Allow" if ticket == "good" else "Deny",
            "Resource": event["methodArn"],
        }
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        return {"principalId": "guest:1", "policyDocument": policy, "context": {"account": "mall"}}
    return {"isAuthorized": event["headers"].get("authorization") == "good", "context": {"account": "mall"}}
