import CArguments
import Glibc

let words = stride(from: 1, to: prism_argument_count(), by: 1).map { String(cString: prism_argument($0)) }
exit(await runPrismctl(words))
