# Only the prediction is written.

# %% solve=a-predict
