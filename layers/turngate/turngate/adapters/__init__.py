"""Ports put into practice, technology first: dynamodb, sqlite, openai, apigateway, sqs, memory."""
