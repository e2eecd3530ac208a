# Right, as Colab saves it.

# %% solve=*
# %% colab
