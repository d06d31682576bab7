"""What tests and proofs stand on: the scripted agent and the conformance suites."""
