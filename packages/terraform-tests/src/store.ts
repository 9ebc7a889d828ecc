/** What a provider is configured with to reach a server. */
export interface Connection {
  /** host[:port] */
  readonly server: string
  readonly region: string
  readonly user: string
  readonly password: string
  readonly tls: boolean
}

/** The calls of S3 that the provider makes for a bucket. Each fails with Refused when the server refuses it. */
export interface Store {
  has(bucket: string): Promise<boolean>
  make(bucket: string, locking: boolean): Promise<void>
  isLocking(bucket: string): Promise<boolean>
  /** The bucket's policy as JSON; empty: none, so it is private. */
  policyOf(bucket: string): Promise<string>
  dropPolicy(bucket: string): Promise<void>
  isEmpty(bucket: string): Promise<boolean>
  remove(bucket: string): Promise<void>
}
