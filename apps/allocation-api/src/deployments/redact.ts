import type { Keys, Order } from './deployment.ts'

export const REDACTED = '<redacted>'

/** What is stored of a request. */
export const recordOf = (order: Order, keys: Keys | null): object => {
  const shown = (key: string | undefined) => (key ? REDACTED : '')
  return {
    ...order,
    objectStorageAccessKey: shown(keys?.accessKey),
    objectStorageSecretKey: shown(keys?.secretKey),
  }
}

export const orderOfRecord = (record: unknown): Order => {
  const { objectStorageAccessKey: _, objectStorageSecretKey: __, ...order } = record as Order & Record<string, unknown>
  return order
}
