"""The suite for a machine with a GPU and no network: tests, engines, tokens per second, and operations."""
