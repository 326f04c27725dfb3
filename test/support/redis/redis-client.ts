import { Redis, type RedisOptions } from 'ioredis';
import { closeLater } from '../process/close-later.js';

/** Connects to a Redis on 127.0.0.1. */
export function redisClient(port: number, options: Omit<RedisOptions, 'replyMapping'> = {}): Redis {
  return closeLater(new Redis(port, '127.0.0.1', options), (redis) => redis.disconnect());
}
