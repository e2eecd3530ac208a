# Right; saved by Colab after a test cell was copied, one deleted, one edited, and the flags of an answer flipped.

# %% solve=*
# %% copy=b-test
# %% replace=c-test
pass
# %% delete=a-test
# %% flag=b-kernel solution=false locked=true
# %% move=c-sum after=setup
# %% colab
