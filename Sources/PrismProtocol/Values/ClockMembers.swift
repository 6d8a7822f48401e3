/// The members of a meta that tell by which clock its `CREATE_TIME` is (docs/packet.md, "Clocks"). No program sets them.
public enum ClockMembers {
  /// The kernel's id of the boot in which the report came.
  public static let bootIDKey = "SYS_BOOT_ID"
  /// When that boot began, by the clock as it was set when the report came: milliseconds since 1970.
  public static let bootTimeKey = "SYS_BOOT_TIME"
  /// By how many milliseconds the clock was set forward in that boot after the report came.
  public static let stepKey = "SYS_CLOCK_STEP"
  /// `earlier`: the time is by the clock of an earlier boot, of which `Prism-Sent-Time` says nothing.
  public static let bootKey = "SYS_CLOCK_BOOT"
  public static let earlierBoot = "earlier"

  public static let keys: Set<String> = [bootIDKey, bootTimeKey, stepKey, bootKey]
}
