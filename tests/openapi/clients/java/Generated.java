package javax.annotation;

/** The generated code has this annotation, which is not part of the JDK. */
public @interface Generated {
  String[] value();

  String date() default "";

  String comments() default "";
}
