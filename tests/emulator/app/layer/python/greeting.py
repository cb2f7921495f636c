WHO = "from the layer"
