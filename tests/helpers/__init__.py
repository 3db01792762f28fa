"""What several tests share: small datasets, environments and agents."""
