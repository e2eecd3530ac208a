# Everything right. Points: all that need no GPU; the written answer waits for a person.

# %% solve=*
# %% replace=e-why
Two loads and one store per addition, so **bandwidth** is the limit.
