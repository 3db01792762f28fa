"""Networks and losses on tensors."""
