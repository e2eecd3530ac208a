# Right, and nothing else; what a test hands in under another name, with other line ends or as another version.

# %% solve=*
