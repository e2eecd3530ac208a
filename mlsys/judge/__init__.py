"""Judge one question of one submission: its tests run here, where they can be trusted, its code in a sandbox."""
