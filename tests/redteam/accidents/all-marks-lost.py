# Right; all metadata and all cell ids are gone.

# %% solve=*
# %% strip=*
