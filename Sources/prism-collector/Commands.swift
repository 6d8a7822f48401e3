import PrismBase
import PrismCollector
import PrismPacket
import PrismProtocol

/// `check`, `migrate`, `backup` and `restore`.
/// - Throws: 64 for another word, or for operands that the command does not take.
func runCommand(_ arguments: Arguments) throws(Flags.Fault) {
  let words = arguments.operands
  switch (words[0], words.count) {
  case ("check", 1):
    let folder = try Flags(arguments).options.symbolFolder
    print("the configuration has no fault")
    if let warning = folder.warning { StandardStreams.say("prism-collector: \(warning)\n") }
  case ("migrate", 1):
    try migrate(Flags(arguments), from: arguments.given.last { $0.name == "--from" }?.value)
  case ("backup", 2): try backup(Flags(arguments), to: words[1])
  case ("restore", 1...2): try restore(Flags(arguments), from: words.dropFirst().first)
  case ("backup", 1):
    throw Flags.Fault(exitCode: 64, message: "backup needs the FOLDER that the copies go to\n\(Flags.usage)")
  case ("backup", _), ("restore", _):
    throw Flags.Fault(exitCode: 64, message: "\(ArgumentFault.unexpectedWord(words[2]))\n\(Flags.usage)")
  case ("check", _), ("migrate", _):
    throw Flags.Fault(exitCode: 64, message: "\(ArgumentFault.unexpectedWord(words[1]))\n\(Flags.usage)")
  default: throw Flags.Fault(exitCode: 64, message: unknownCommand(words[0]))
  }
}

private func unknownCommand(_ word: String) -> String {
  let names = [
    "check", "migrate", "backup", "restore", "import", "device-key", "device", "query", "record", "command", "crash",
    "notice", "output", "symbols",
  ]
  let hint = NearestName.of(word, among: names).map { "; did you mean `prism-collector \($0)`?" } ?? ""
  return "there is no command `\(word)`\(hint) (`prism-collector --help` lists them)"
}

/// - Parameter from: a state folder or `postgresql://…` whose store is carried into the flags' one; nil: only the tables are made.
private func migrate(_ flags: Flags, from: String?) throws(Flags.Fault) {
  guard let target = flags.options.store else {
    throw Flags.Fault(exitCode: 64, message: "migrate is for store: postgresql://…; SQLite needs no such step")
  }
  do throws(PostgreSQLSetup.Refusal) {
    print("the schema has version \(try PostgreSQLSetup.migrate(target))")
  } catch { throw Flags.Fault(exitCode: 69, message: error.description) }
  guard let from else { return }
  do { try StoreMigration(from: from, to: target).run { print($0) } } catch {
    throw Flags.Fault(exitCode: 69, message: "\(error)")
  }
}

private func backup(_ flags: Flags, to folder: String) throws(Flags.Fault) {
  guard flags.options.store == nil else {
    throw Flags.Fault(
      exitCode: 64, message: "backup is for SQLite; PostgreSQL has pg_dump and base backups (docs/backup.md)")
  }
  do { try StoreBackup(state: flags.options.state).copy(to: folder) { print($0) } } catch {
    throw Flags.Fault(exitCode: 69, message: "backup: \(error)")
  }
}

/// - Parameter folder: of `backup`; nil: a PostgreSQL that its own tools restored.
private func restore(_ flags: Flags, from folder: String?) throws(Flags.Fault) {
  switch (flags.options.store, folder) {
  case (nil, nil): throw Flags.Fault(exitCode: 64, message: "restore needs the FOLDER of `prism-collector backup`")
  case (.some, .some):
    throw Flags.Fault(
      exitCode: 64, message: "restore the database with PostgreSQL's own tools, then run restore without a folder")
  default: break
  }
  do {
    if let target = flags.options.store {
      try StoreBackup.leap(target)
    } else if let folder {
      try StoreBackup(state: flags.options.state).restore(
        from: folder, now: SystemTime().unixMilliseconds
      ) { print($0) }
    }
  } catch { throw Flags.Fault(exitCode: 69, message: "restore: \(error)") }
  print("start the collector: it gives numbers behind all that devices may know, and they bring up what it lacks")
}

/// The key is what the device's file holds; its first half is the key of a cipher with 16 bytes.
func printDeviceKey(_ arguments: Arguments) async throws(Flags.Fault) -> Int32 {
  let words = arguments.operands
  guard words.count == 3 else {
    throw Flags.Fault(exitCode: 64, message: "device-key needs KEY-ID and DEVICE\n\(Flags.usage)")
  }
  let (id, device, flags) = (words[1], words[2], try Flags(arguments))
  guard let master = flags.options.keys[id], flags.options.keyRules[id]?.derivesForDevice == true else {
    throw Flags.Fault(exitCode: 64, message: "there is no key \(id) with `derive: device` in the configuration")
  }
  let generation: Int
  do throws(StoreFailure) {
    generation = try await DeviceStore(flags.options.fleet).device(device)?.generation ?? 0
  } catch { throw Flags.Fault(exitCode: 69, message: error.description) }
  do throws(PacketError) {
    let key = try DeviceKey.derived(
      master: master, keyID: id, deviceID: device, generation: generation, cipher: .aes256GCM)
    print(Hex.encode(key.bytes))
    return 0
  } catch { throw Flags.Fault(exitCode: 78, message: "a master key has at least \(DeviceKey.masterBytesMin) bytes") }
}
