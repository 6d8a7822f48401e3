// The scenario program of Tests/ClientTests in Swift: clients/c/tests/client_load.c says what it does. Its children are programs
// of their own, since a Swift program can't be forked.

import Foundation
import PrismClient
import PrismProtocol
import Synchronization

do {
  let load = try Load(LoadFlags(Array(CommandLine.arguments.dropFirst())))
  exit(try await load.run() ? 0 : 4)
} catch {
  FileHandle.standardError.write(Data("client-load-swift: \(error)\n".utf8))
  exit(2)
}
