"""What runs the published notebooks with the versions that Colab has; it goes into the published tree as it is."""
