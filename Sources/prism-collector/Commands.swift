import PrismBase
import PrismCollector
import PrismPacket
import PrismProtocol

/// `check`, `migrate` and `device-key`. - Returns: the exit code.
func runCommand(_ words: [String]) -> Int32 {
  do throws(Flags.Fault) {
    switch words[0] {
    case "check":
      _ = try Flags(Array(words.dropFirst()))
      print("the configuration has no fault")
    case "migrate": try migrate(Flags(Array(words.dropFirst())))
    default:
      guard words.count > 3 else { throw Flags.Fault(exitCode: 64, message: "device-key needs ID and DEVICE") }
      try printDeviceKey(words[1], of: words[2], Flags(Array(words.dropFirst(3))))
    }
    return 0
  } catch {
    StandardStreams.say("prism-collector: \(error.message)\n")
    return error.exitCode
  }
}

private func migrate(_ flags: Flags) throws(Flags.Fault) {
  guard let target = flags.options.store else {
    throw Flags.Fault(exitCode: 64, message: "migrate is for store: postgresql://…; SQLite needs no such step")
  }
  do throws(PostgreSQLSetup.Refusal) {
    print("the schema has version \(try PostgreSQLSetup.migrate(target))")
  } catch { throw Flags.Fault(exitCode: 69, message: error.description) }
}

/// The key is what the device's file holds; its first half is the key of a cipher with 16 bytes.
private func printDeviceKey(_ id: String, of device: String, _ flags: Flags) throws(Flags.Fault) {
  guard let master = flags.options.keys[id], flags.options.keyRules[id]?.derivesForDevice == true else {
    throw Flags.Fault(exitCode: 64, message: "there is no key \(id) with `derive: device` in the configuration")
  }
  do throws(PacketError) {
    let key = try DeviceKey.derived(master: master, keyID: id, deviceID: device, cipher: .aes256GCM)
    print(Hex.encode(key.bytes))
  } catch { throw Flags.Fault(exitCode: 78, message: "a master key has at least \(DeviceKey.masterBytesMin) bytes") }
}
