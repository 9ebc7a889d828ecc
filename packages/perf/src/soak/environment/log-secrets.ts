/** Searches every log line of the services for secrets. */
export class LogSecretScanner {
  readonly #report: (finding: string) => void
  readonly #secrets = new Map<string, string>()
  readonly findings: string[] = []
  lineCount = 0

  constructor(report: (finding: string) => void) {
    this.#report = report
  }

  add(name: string, secret: string): void {
    this.#secrets.set(name, secret)
  }

  /** A finding names the secret and does not repeat it. */
  scan(source: string, line: string): void {
    this.lineCount += 1
    for (const [name, secret] of this.#secrets) {
      if (!line.includes(secret)) continue
      const finding = `${name} in the log of ${source}: ${line.replaceAll(secret, `<${name}>`)}`
      this.findings.push(finding)
      this.#report(finding)
    }
  }
}
