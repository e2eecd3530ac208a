"""The forms that the stages pass on: graphs of operations, expressions of one element, and tensors as functions."""
