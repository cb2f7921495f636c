"""The one table on DynamoDB."""
