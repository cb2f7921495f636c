"""The offline demo model: an OpenAI-compatible server that knows nothing but what its prompt says.

It lets everybody try and test the whole product without a key, a download or a network. It embeds text with the
multilingual Universal Sentence Encoder, shortlists intents for a question, and answers by quoting the evidence it
was given. It never phrases anything of its own, and whatever it says is marked ``simulated``.
It runs in a venv of its own (``.venvs/demo-model``): numpy and the weights stay out of the product.
"""
