// The scenario program of Tests/ClientTests in Swift: clients/c/tests/client_load.c says what it does. Its children are programs
// of their own, since a Swift program can't be forked.

import Foundation
import PrismClient
import PrismProtocol
import Synchronization

do {
  let losses = Losses()
  var load: Load? = try Load(LoadFlags(Array(CommandLine.arguments.dropFirst())), losses)
  let (isGood, counts) = try await load?.run() ?? (false, nil)
  load = nil  // the client ends, and reports its last losses
  if let counts { print(losses.text(with: counts)) }
  exit(isGood ? 0 : 4)
} catch {
  FileHandle.standardError.write(Data("client-load-swift: \(error)\n".utf8))
  exit(2)
}
