"""Pure decisions over frozen shapes: no I/O, no clock, no AWS, no vendor SDK."""
