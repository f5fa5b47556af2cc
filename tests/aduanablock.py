"""The settings module of Aduana's example, as FRONTERA_SETTINGS names it, but for the folder."""

MAX_REQUESTS = 2000
MAX_NEXT_REQUESTS = 10
DELAY_ON_EMPTY = 0.0
BC_MIN_HOSTS = 3
OVERUSED_SLOT_FACTOR = 5.0  # Frontera's default
SCORER = "HitsScorer"
USE_SCORES = True
SOFT_CRAWL_LIMIT = 1000.0
HARD_CRAWL_LIMIT = 1000.0
FREQ_SCALE = 2.0
SERVER_NAME = "crawler.example.org"
