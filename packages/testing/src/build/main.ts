import { buildPackage } from './build.ts'

// Usage: main.ts. Builds dist/ of the package.
await buildPackage()
