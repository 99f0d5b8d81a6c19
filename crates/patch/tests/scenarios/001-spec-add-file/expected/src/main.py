from utils.helpers import greet
