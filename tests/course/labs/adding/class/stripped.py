# Right; an editor dropped all metadata and gave new cell ids.

# %% solve=*
# %% replace=e-why
Bandwidth.
# %% strip=*
