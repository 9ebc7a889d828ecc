// The same tests, with every language.
import './clients.ci.test.ts'
