"""What running accelerators costs: money, energy and carbon."""
