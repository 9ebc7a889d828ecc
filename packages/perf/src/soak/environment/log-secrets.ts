const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

/** Searches every log line of the services for secrets. */
export class LogSecretScanner {
  readonly #report: (finding: string) => void
  readonly #secrets = new Map<string, string>()
  readonly #tokens = new Set<string>()
  readonly findings: string[] = []
  lineCount = 0

  constructor(report: (finding: string) => void) {
    this.#report = report
  }

  add(name: string, secret: string): void {
    this.#secrets.set(name, secret)
  }

  /** Adds a token of a client, which is a UUID. */
  addToken(token: string): void {
    this.#tokens.add(token)
  }

  /** A finding names the secret and does not repeat it. */
  scan(source: string, line: string): void {
    this.lineCount += 1
    const tokens = (line.match(UUID) ?? []).filter(uuid => this.#tokens.has(uuid))
    const found = [...this.#secrets].filter(([, secret]) => line.includes(secret))
    for (const [name, secret] of [...found, ...tokens.map(token => ['a token of a client', token] as const)]) {
      const finding = `${name} in the log of ${source}: ${line.replaceAll(secret, `<${name}>`)}`
      this.findings.push(finding)
      this.#report(finding)
    }
  }
}
