"""Load a tenant's folder into a deployed stack: validate, publish version 1, activate.

    EMBEDDING_BASE_URL=… EMBEDDING_MODEL=… EMBEDDING_API_KEY=… \\
    python -m tools.load_tenant --stack turngate --tenant examples/mall

Credentials and region are the AWS tools' own. The embedding model must be the one the stack was deployed with.
collections.json of the folder says which collections are public; without it all are (examples/mall/README.md). Loading
the same content again changes nothing; other content under the same version is refused."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import boto3

from local.tenants import Loader, TenantError, private_collections, read_tenant
from turngate.adapters.dynamodb.store import DynamoDBConversationStore
from turngate.adapters.openai_embeddings import OpenAIEmbedder
from turngate.adapters.s3 import S3Files
from turngate.errors import TurngateError


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Load a tenant's folder into a deployed stack.")
    parser.add_argument("--stack", required=True, help="name of the CloudFormation stack")
    parser.add_argument("--tenant", required=True, type=Path, help="folder with config.json and documents/")
    given = parser.parse_args(arguments)
    missing = [name for name in ("EMBEDDING_BASE_URL", "EMBEDDING_MODEL") if not os.environ.get(name)]
    if missing:
        parser.error(f"set {' and '.join(missing)}: the model the stack was deployed with")
    described = boto3.client("cloudformation").describe_stacks(StackName=given.stack)["Stacks"][0]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in described["Outputs"]}
    embedder = OpenAIEmbedder(
        base_url=os.environ["EMBEDDING_BASE_URL"],
        model=os.environ["EMBEDDING_MODEL"],
        api_key=os.environ.get("EMBEDDING_API_KEY", ""),
    )
    with tempfile.TemporaryDirectory() as cache:
        files = S3Files(boto3.client("s3"), outputs["KnowledgeBucketName"], Path(cache))
        store = DynamoDBConversationStore(boto3.client("dynamodb"), outputs["TableName"])
        try:
            config, collections = read_tenant(given.tenant)
            private = private_collections(given.tenant)
            counts = Loader(store, files, embedder).load(config, collections, private=private)
        except (TenantError, TurngateError, OSError, ValueError) as error:
            print(f"load_tenant: {error}", file=sys.stderr)
            return 1
    for name, count in counts.items():
        print(f"{config.account}/{name}: {count} documents")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
