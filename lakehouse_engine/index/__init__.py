"""Where does this key live?"""
