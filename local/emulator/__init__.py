"""The AWS stand-in of the local stack: one pinned ministack, made faithful where this product leans on it.

Run by the emulator's own virtual environment (it pins botocore): `.venvs/emulator/bin/python -m local.emulator`.
"""
