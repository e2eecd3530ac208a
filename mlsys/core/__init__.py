"""What every room stands on: arguments that are checked, number formats, sourced data files, notebook cells."""
