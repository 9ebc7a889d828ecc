import { Hono } from 'hono'
import type { HttpEnv } from '../types.ts'

export const reservedRoutes = (reserved: readonly string[]) =>
  new Hono<HttpEnv>().get('/', c => c.json({ reserved }, 200))
