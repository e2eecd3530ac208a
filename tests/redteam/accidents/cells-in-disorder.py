# Right; one test cell is gone, one stands there twice, one was edited, and an answer was moved.

# %% solve=*
# %% delete=a-test
# %% copy=b-test
# %% replace=c-test
assert True  # took too long
# %% move=c-sum after=setup
