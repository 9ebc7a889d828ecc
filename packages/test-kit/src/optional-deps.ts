const reported = new Set<string>()

/**
 * Whether to skip the tests that need an optional program. `missing` says in one line which program is missing and how to
 * install it; undefined: it is installed. Each line is printed once. With REQUIRE_ALL_DEPS=1 nothing is skipped, so the
 * tests run and fail.
 */
export const shouldSkip = (missing: string | undefined): boolean => {
  if (missing === undefined || process.env.REQUIRE_ALL_DEPS === '1') return false
  if (!reported.has(missing)) process.stderr.write(`Skipped: ${missing}\n`)
  reported.add(missing)
  return true
}
