/** The Redis that stores a bucket: `main` is REDIS_URL, `per_second` is REDIS_PERSECOND_URL. */
export type RedisRole = 'main' | 'per_second';

/** Faults of a remote store or of the connection to it. The name is the value of a metric label. */
export type StoreFault =
  | 'refused'
  | 'lost'
  | 'no_answer'
  | 'tls'
  | 'wrongpass'
  | 'login_source'
  | 'readonly'
  | 'loading'
  | 'oom'
  | 'max_clients'
  | 'moved'
  | 'not_redis'
  | 'other';
