"""Networks, losses and the policy's learner: tensors in, tensors out."""
