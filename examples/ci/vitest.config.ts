import { defineConfig } from 'vitest/config'

// The first start of a service takes longer than the default of 5 s.
export default defineConfig({ test: { testTimeout: 60_000, hookTimeout: 60_000 } })
