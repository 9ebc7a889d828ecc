import { Hono } from 'hono'
import type { HttpEnv } from '../types.ts'

export interface MetricsText {
  readonly contentType: string
  readonly text: () => Promise<string>
}

export const metricsRoutes = ({ contentType, text }: MetricsText) =>
  new Hono<HttpEnv>().get('/', async c => c.body(await text(), 200, { 'Content-Type': contentType }))
