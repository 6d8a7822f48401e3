import PrismBase
import PrismCollector
import PrismPacket
import PrismProtocol

extension Command {
  /// `prism-collector device …`: finds, enrolls, tags and revokes devices.
  static let device = group(
    "device",
    [
      (
        "find", "[EXPRESSION]",
        """
        the devices that sent something and that EXPRESSION chooses
        Such as 'tag.region = eu and seen > 1d' (docs/fleet.md).
        """
      ),
      (
        "tag", "EXPRESSION NAME=TEXT [NAME=TEXT...]",
        """
        give these tags to the devices that EXPRESSION chooses
        `NAME-` takes one away. It prints their ids.
        """
      ),
      ("list", "", "every device that was enrolled or revoked"),
      ("show", "DEVICE", "one device that was enrolled or revoked"),
      ("revoke", "DEVICE", "answer its packets 403 within 5 seconds; it keeps its reports"),
      ("restore", "DEVICE", "take a revocation back"),
      ("forget", "DEVICE", "let it enroll again by its name, because it lost its key; the old key is good no more"),
      (
        "token", "KEY-ID COUNT DAYS",
        """
        print an enrollment token for COUNT devices within DAYS days
        Their keys are made from the master KEY-ID (`derive: device`). The token is printed once, and kept as a hash. A
        device that has sent packets before needs one with its ID.
        """
      ),
      ("tokens", "", "every enrollment token: name, key, devices, when it expires"),
      ("remove-token", "NAME", "let no device enroll with it any more"),
    ], options: DeviceCommands.options
  ) { line throws(Failure) in
    for (option, owner) in [("--device", "token"), ("--tag", "token"), ("--sort", "find"), ("--namespace", "tag")]
    where line.has(option) && line.verb != owner {
      throw line.misused("\(option) is for `device \(owner)`")
    }
    return switch line.verb {
    case "find": try await DeviceFinding.find(line)
    case "tag": try await DeviceFinding.tag(line)
    default: try await DeviceCommands(try line.options).run(line)
    }
  }
}

extension CollectorClient {
  /// - Throws: 64 for an id that no device can have.
  static func check(_ device: String) throws(Failure) {
    guard !DeviceID.isValid(device) else { return }
    throw .usage("`\(device.printable)` is no device's id, which is 1 to 128 visible ASCII characters")
  }

  /// Says on standard error that an id may be mistyped. That is no refusal: the device may come later.
  func note(ifUnknown device: String, _ effect: String) async throws(Failure) {
    try Self.check(device)
    do throws(Failure) { _ = try await get("/device", query: "id=\(device.percentEncoded)") } catch {
      guard error.exitCode == 1 else { throw error }
      complain("\(error.message); \(effect) all the same")
    }
  }
}

private struct DeviceCommands {
  static let options =
    [
      ArgumentOption("--device", "ID", "with token: the only device that it is for"),
      ArgumentOption(
        "--tag", "NAME=TEXT", "with token: a tag of the devices that it enrolls; may be given several times",
        isRepeatable: true),
      ArgumentOption("--sort", "ORDER", "with find: seen, silent, device, waiting, lost, packets or crash (device)"),
      ArgumentOption("--namespace", "NAME", "with tag: the namespace of the tags (prism)"),
      Command.json,
    ]

  private let options: CollectorOptions
  private let store: DeviceStore

  init(_ options: CollectorOptions) throws(Failure) {
    self.options = options
    do throws(StoreFailure) { try options.fleet.prepare() } catch {
      throw .unavailable(error.description)
    }
    store = DeviceStore(options.fleet)
  }

  func run(_ line: Invocation) async throws(Failure) -> Int32 {
    let (values, tags) = (line.operands, line.values("--tag"))
    let deviceTags = tags.isEmpty ? nil : try DeviceFinding.tags(tags)
    if line.verb == "revoke" {
      try await line.ask { client throws(Failure) in try await client.note(ifUnknown: values[0], "it is revoked") }
    }
    do throws(StoreFailure) {
      switch line.verb {
      case "list": return try await list(Self.devices(line))
      case "tokens":
        return Listing(line, "token keyId devices devicesMax expireTime deviceId").all(
          .array(try await store.tokens().map(\.json)))
      case "token": return try await makeToken(values, line["--device"], deviceTags)
      case "remove-token": return found(try await store.removeToken(values[0]), "no token is named \(values[0])")
      case "forget": return found(try await store.forget(values[0]), "\(values[0]) is not enrolled")
      case "revoke", "restore": return try await set(values[0], isRevoked: line.verb == "revoke")
      default: return try await show(values[0], Self.devices(line))
      }
    } catch { throw .unavailable(error.description) }
  }

  private func found(_ isFound: Bool, _ otherwise: String) -> Int32 {
    if !isFound { complain(otherwise) }
    return isFound ? 0 : 1
  }

  private static func devices(_ line: Invocation) -> Listing {
    Listing(line, "deviceId enrolledTime revokedTime keyId token info")
  }

  private func list(_ listing: Listing) async throws(StoreFailure) -> Int32 {
    var last = ""
    while true {
      let page = try await store.page(after: last, limit: 1000)
      guard page.allSatisfy({ listing.add($0.json) }), let end = page.last else { return listing.end() }
      last = end.id
    }
  }

  private func show(_ id: String, _ listing: Listing) async throws(StoreFailure) -> Int32 {
    guard let device = try await store.device(id) else { return found(false, "\(id) was neither enrolled nor revoked") }
    return listing.all(.array([device.json]))
  }

  private func set(_ id: String, isRevoked: Bool) async throws(StoreFailure) -> Int32 {
    if !isRevoked, try await store.device(id)?.revokedTime == nil { return found(false, "\(id) is not revoked") }
    try await store.setRevoked(id, at: isRevoked ? SystemTime().unixMilliseconds : nil)
    return 0
  }

  private func makeToken(
    _ values: [String], _ device: String?, _ tags: DeviceTags?
  ) async throws(StoreFailure) -> Int32 {
    guard options.keyRules[values[0]]?.derivesForDevice == true else {
      complain("there is no key \(values[0]) with `derive: device` in the configuration")
      return 64
    }
    guard let count = Int(values[1]), (1...10_000_000).contains(count), let days = Int(values[2]),
      (1...3650).contains(days)
    else {
      complain("device token: COUNT is from 1 to 10000000, DAYS from 1 to 3650")
      return 64
    }
    guard device.map({ DeviceID.isValid($0) && count == 1 }) ?? true else {
      complain("--device is 1 to 128 visible ASCII characters, and COUNT is 1 then")
      return 64
    }
    let made = EnrollmentToken.new(
      keyID: values[0], devicesMax: count, expireTime: SystemTime().unixMilliseconds + Int64(days) * 86_400_000,
      device: device, tags: tags)
    try await store.add(made.token)
    print(made.text)
    return 0
  }
}
