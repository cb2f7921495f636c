"""The edge of a chat: identity, sockets and frames, up to the point where the turn protocol takes over."""
