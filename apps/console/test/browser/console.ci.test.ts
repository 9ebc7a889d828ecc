import { DEFAULT_VIEW } from '../support/views.ts'
import { testConsole } from '../tasks/all.ts'

await testConsole([DEFAULT_VIEW])
